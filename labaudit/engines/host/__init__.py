"""What a sandbox holds on this machine, and whose it is: surfaces, staged inputs, control groups, owners."""
