-- Returns the version and the memory of a value with this fence. If Lease.Raise has raised the fence ahead of the clock, it
-- is remembered until the clock has passed it, and then for as long as any other fence.
local function remembering(fence, time)
  local ahead = fence / 1000 - time[1] * 1000 - time[2] / 1000 -- in ms
  if ahead < 1000 then
    return '1.' .. base .. ':', base
  end
  local long = string.format('%.0f', base + ahead)
  return '1.' .. long .. ':', long
end
