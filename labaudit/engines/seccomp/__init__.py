"""One list of allowed system calls, as Docker's JSON and as a BPF program for bubblewrap."""
