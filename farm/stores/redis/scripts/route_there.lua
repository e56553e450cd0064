-- Says whether a coordinator is there. ARGV: which.
return {is_there(ARGV[2]) and 'ok' or 'no'}
