-- Ends a lease, and clears away what was under it. ARGV: coordinator.
local changes = clear_away({[ARGV[2]] = true})
return {'ok', changes and wake()}
