"""What a person or another program is shown: reports, bundle contents, progress."""
