-- ARGV: now.
return {'ok', false, exclusions(ARGV[2])}
