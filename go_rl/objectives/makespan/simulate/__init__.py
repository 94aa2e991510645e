"""One iteration on connected devices."""
