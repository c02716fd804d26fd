import { firstNames, type CountedMessage } from '../guard/row-keys.ts'
import type { Sender } from '../model/guard.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Preload, Rows } from '../store/operation.ts'
import { listedSenderOf, strangerOf, type JudgedMessage } from './judge-message.ts'
import type { OtpNeeds } from './needs.ts'
import { namePhoneRows, readPhone } from './phones.ts'

type RevertNeeds = Pick<OtpNeeds, 'store' | 'clock' | 'keys' | 'guard'>

/**
 * Reverts the guard's counts of a request whose messages no provider took, so that an outage of the providers does not get
 * countries blocked. One that a provider took counts, even if it was not delivered: it costs money. Never rejects.
 */
export function revertGuardCounts(needs: RevertNeeds, request: OtpRequest): Promise<void> {
  const { keys, clock } = needs
  const application = { id: request.appId, developerId: request.developerId }
  const findSender = (rows: Rows) =>
    listedSenderOf(rows, application, readPhone(rows, keys, request).record, request, rows.now(clock))
  return revert(needs, request, request.contexts, findSender, (rows) => ({
    application,
    ...namePhoneRows(rows, keys, request),
  }))
}

/** As `revertGuardCounts`, for a message with the code of another system. @param judged as it was judged */
export const revertRelayedCount = (needs: RevertNeeds, { message, sender }: JudgedMessage): Promise<void> =>
  revert(needs, message, sender.contexts, () => sender)

async function revert(
  { store, guard, clock }: RevertNeeds,
  message: CountedMessage,
  contexts: readonly string[],
  findSender: (rows: Rows) => Sender,
  nameSender?: Preload['first'],
): Promise<void> {
  try {
    await store.decide({
      preload: {
        first(rows) {
          const keys = guard.keysToRevert(message, strangerOf(message, contexts))
          return { ...nameSender?.(rows), guard: keys && firstNames(keys) }
        },
      },
      decide(rows) {
        const keys = guard.keysToRevert(message, findSender(rows))
        const changes = guard.revert(rows.guard, keys, message, rows.now(clock))
        return { result: undefined, changes: [{ kind: 'guard', changes }] }
      },
    })
  } catch (error) {
    guard.onFault(error)
  }
}
