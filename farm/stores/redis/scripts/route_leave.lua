-- Ends a lease, and clears away what was under it. ARGV: coordinator.
clear_away({[ARGV[2]] = true})
return {'ok'}
