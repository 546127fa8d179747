"""Values to pages: one file per kind of page, and the streaming pass over the trials."""
