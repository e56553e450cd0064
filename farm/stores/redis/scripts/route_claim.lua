-- Puts an agent's link where it is now, and renews the lease. ARGV: coordinator, seconds, client
-- id, link.
stay(ARGV[2], ARGV[3])
put_route(ARGV[4], ARGV[2], ARGV[5])
return {'ok'}
