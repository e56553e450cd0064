"""The browser, by Playwright: find, launch, windows, tabs, egress. `discovery.find` is the one
way to find an executable."""
