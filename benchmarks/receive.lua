-- Deliveries as a service sends them, no two alike: 4 of 5 tell of a booking, 1 of a product's availability.
math.randomseed(os.time())

local number = 0
local path, secret = os.getenv("BENCH_PATH"), os.getenv("BENCH_SECRET")
local endpoints = tonumber(os.getenv("BENCH_ENDPOINTS"))
local products = tonumber(os.getenv("BENCH_PRODUCTS"))
local first, last = os.getenv("BENCH_FIRST_MONTH"), os.getenv("BENCH_LAST_MONTH")
local subscription = "4b8d1f0e-0d5c-4a55-9f6f-6d1c1b0f2a11"

local function hex(length)
  local letters = {}
  for place = 1, length do letters[place] = string.format("%x", math.random(0, 15)) end
  return table.concat(letters)
end

function request()
  number = number + 1
  local data
  local kind = "BOOKING_UPDATE"
  if number % 5 == 0 then
    kind = "AVAILABILITY_UPDATE"
    data = string.format('"productId":"product-%d","localDateStart":"%s-%02d","localDateEnd":"%s-%02d"',
      math.random(0, products - 1), first, math.random(1, 28), last, math.random(1, 28))
  else
    data = string.format('"uuid":"%s-%s-4%s-a%s-%s","id":"R-%d","utcCreatedAt":"2026-11-20T10:00:00Z"',
      hex(8), hex(4), hex(3), hex(3), hex(12), number)
  end
  local body = string.format('{"subscriptionId":"%s","notificationType":"%s","data":{%s}}', subscription, kind, data)
  local endpoint = string.format("%s%02d", path, math.random(0, endpoints - 1))
  return wrk.format("POST", endpoint, {["X-Octo-Sync-Secret"] = secret, ["Content-Type"] = "application/json"}, body)
end
