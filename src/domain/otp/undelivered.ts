import { loadGuardFacts } from '../guard/facts.ts'
import { findListing, withListing } from '../guard/listing.ts'
import type { CountedMessage, GuardedMessage } from '../guard/row-keys.ts'
import type { Awaitable } from '../model/awaitable.ts'
import type { Sender } from '../model/guard.ts'
import type { OtpRequest } from '../model/request.ts'
import type { OtpNeeds } from './operations.ts'
import { run, type Attempt } from './run.ts'
import { senderOf } from './sender.ts'
import type { Decision, RowReader } from '../store/operation.ts'

type GuardNeeds = Pick<OtpNeeds, 'store' | 'clock' | 'keys' | 'guard'>

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Never rejects.
 */
export const revertGuardCounts = (needs: GuardNeeds, request: OtpRequest): Promise<void> =>
  revertCounts(needs, request, async (rows, readPhone, now) => {
    const { record } = await readPhone(rows, needs.keys, request)
    const { appId, developerId } = request
    const listing = findListing(await rows.listRules({ id: appId, developerId }), request, now)
    return withListing(senderOf(record, request), listing)
  })

/** As `revertGuardCounts`, for a message with the code of another system. @param sender as it was judged */
export const revertRelayedCount = (
  needs: GuardNeeds,
  message: GuardedMessage,
  sender: Sender,
): Promise<void> => revertCounts(needs, message, () => sender)

async function revertCounts(
  needs: GuardNeeds,
  request: CountedMessage,
  findSender: (rows: RowReader, readPhone: Attempt['readPhone'], now: number) => Awaitable<Sender>,
): Promise<void> {
  try {
    await run(needs, ({ guard, readPhone }) => ({
      async read(rows) {
        const now = rows.now(needs.clock)
        const guardKeys = guard.keysToRevert(request, await findSender(rows, readPhone, now))
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
