import { loadGuardFacts } from '../guard/facts.ts'
import { findListing, withListing } from '../guard/listing.ts'
import type { OtpRequest } from '../model/request.ts'
import type { OtpNeeds } from './operations.ts'
import { run } from './run.ts'
import { senderOf } from './sender.ts'
import type { Decision } from '../store/operation.ts'

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Never rejects.
 */
export async function revertGuardCounts(
  needs: Pick<OtpNeeds, 'store' | 'clock' | 'keys' | 'guard'>,
  request: OtpRequest,
): Promise<void> {
  const { clock, keys } = needs
  try {
    await run(needs, ({ guard, readPhone }) => ({
      async read(rows) {
        const now = rows.now(clock)
        const { record } = await readPhone(rows, keys, request)
        const { appId, developerId } = request
        const listing = findListing(await rows.listRules({ id: appId, developerId }), request, now)
        const sender = withListing(senderOf(record, request), listing)
        const guardKeys = guard.keysToRevert(request, sender)
        return { now, guardFacts: await loadGuardFacts(rows.guard, guardKeys) }
      },
      decide: ({ now, guardFacts }): Decision<void> => ({
        result: undefined,
        changes: [{ kind: 'guard', changes: guard.revert(guardFacts, request, now) }],
      }),
    }))
  } catch (error) {
    needs.guard.onFault(error)
  }
}
