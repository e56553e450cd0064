"""Tabs as people see them: links, data channels to agents, and who looks at what (P16 to P18)."""
