"""Methods compared at equal samples and seconds."""
