"""The browser, by Playwright; `discovery.find` is the one way to find an executable."""
