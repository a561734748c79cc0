"""Ways to tell a person that something happened: one file each."""
