"""The process that drives Chromium and reports what it has."""
