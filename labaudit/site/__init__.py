"""Sealed runs to a static site that opens by double-click, reads without scripts, and lets readers check it.

published_run, trial_reading    a run and its trials, each file hashed against its record as it is read
run_check                       what `labaudit verify` says about the run before anything is written
places, charts, figures         names to addresses, values to positions, numbers to text
plain_text                      what an agent wrote to what a reader may safely look at
run_pages, trial_page, tally    one streaming pass over the trials
overview and the other pages    one file per kind of page
data_shards                     the trials table and the evidence for the check in the reader's browser
machine_files, signing          index.json, checksums, metadata; the site's own signature and publication log
build, rebuild, server          the whole; the whole again, compared; a loopback server to look at it
"""

from labaudit.site.build import BuiltSite, build_site

__all__ = ["BuiltSite", "build_site"]
