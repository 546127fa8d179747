"""Images by id: the bundled one built from packages, archives in and out, file trees for engines without a daemon."""
