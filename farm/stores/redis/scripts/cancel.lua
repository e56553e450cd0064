-- Gives a reserved window, tab or flow back, if it is open still (promise 5).
-- ARGV: client id, reservation.
local id = ARGV[2]
local one = open_reservation(id, ARGV[3])
if not one then return {'no'} end
give_back(id, ARGV[3], one)
changed(id)
return {'ok', wake()}
