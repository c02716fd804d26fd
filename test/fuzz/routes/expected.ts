import { carriers, type CarrierWorld, type SimulatedCountry } from './carriers.ts'

/** People who ask for another message when none has come, and how many messages they ask for. */
export const resendShare = 0.6
export const messagesMax = 3

export type Expected = { cost: number; verified: number }

/** Orders of all carriers. */
function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]]
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  )
}

export const fixedOrders = permutations(carriers.map((_, index) => index))

/**
 * Computes what a request costs and how probably it is verified, over its first message and the resends, from the true state.
 *
 * @param chooseCarrier chooses the carrier of a message; `tried` had one before, and `undelivered` said that it did not
 *   arrive
 */
export function expectRequest(
  world: CarrierWorld,
  country: SimulatedCountry,
  now: number,
  chooseCarrier: (tried: readonly number[], undelivered: readonly number[]) => number | undefined,
): Expected {
  const expect = (tried: readonly number[], undelivered: readonly number[], resends: number): Expected => {
    const carrier = chooseCarrier(tried, undelivered)
    const lane = carrier === undefined ? undefined : country.lanes[carrier]
    if (carrier === undefined || !lane) return { cost: 0, verified: 0 }
    const delivery = world.deliveryAt(country, carrier, now)
    const reported = (1 - delivery) * world.honesty(carrier, delivery)
    const asked = resends < messagesMax - 1 ? (1 - delivery - reported) * resendShare : 0
    const failedOver =
      reported > 0.001 ? expect([...tried, carrier], [...undelivered, carrier], resends) : nothing
    const resent = asked > 0.001 ? expect([...tried, carrier], undelivered, resends + 1) : nothing
    return {
      cost: lane.price + reported * failedOver.cost + asked * resent.cost,
      verified: delivery * country.diligence + reported * failedOver.verified + asked * resent.verified,
    }
  }
  return expect([], [], 0)
}

const nothing: Expected = { cost: 0, verified: 0 }

/**
 * Computes the same for each fixed order, which asks the first carrier that does not refuse, again and again, and the next one
 * after a message that was reported as lost. From the last carrier to the first, as each needs only what comes after it.
 */
export function expectOrders(world: CarrierWorld, country: SimulatedCountry, now: number): Expected[] {
  const states = country.lanes.map(({ price }, carrier) => {
    const delivery = world.deliveryAt(country, carrier, now)
    const reported = (1 - delivery) * world.honesty(carrier, delivery)
    return { price, delivery, reported, isRefusing: world.isRefusing(carrier, now) }
  })
  return fixedOrders.map((order) => {
    /** By the number of resends before. */
    let rest: readonly Expected[] = Array.from({ length: messagesMax }, () => nothing)
    for (const carrier of order.toReversed()) {
      const state = states[carrier]
      if (!state || state.isRefusing) continue
      const { price, delivery, reported } = state
      let resent = nothing
      const own: Expected[] = []
      for (let resends = messagesMax - 1; resends >= 0; resends--) {
        const asked = resends < messagesMax - 1 ? (1 - delivery - reported) * resendShare : 0
        const failedOver = reported > 0.001 ? (rest[resends] ?? nothing) : nothing
        const again = asked > 0.001 ? resent : nothing
        resent = {
          cost: price + reported * failedOver.cost + asked * again.cost,
          verified: delivery * country.diligence + reported * failedOver.verified + asked * again.verified,
        }
        own[resends] = resent
      }
      rest = own
    }
    return rest[0] ?? nothing
  })
}

/** Chooses by the true state: the least price per message that arrives, among those not tried. */
export function byTruth(world: CarrierWorld, country: SimulatedCountry, now: number) {
  const ranked = carriers
    .map((_, carrier) => ({
      carrier,
      value: world.deliveryAt(country, carrier, now) / (country.lanes[carrier]?.price ?? Infinity),
    }))
    .filter(({ carrier, value }) => value > 0 && !world.isRefusing(carrier, now))
    .toSorted((a, b) => b.value - a.value)
    .map(({ carrier }) => carrier)
  return (tried: readonly number[], undelivered: readonly number[]) =>
    ranked.find((carrier) => !tried.includes(carrier)) ??
    ranked.find((carrier) => !undelivered.includes(carrier))
}
