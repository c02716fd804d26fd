import type { Failure } from '../domain/model/delivery.ts'
import type { CallbackResult, Provider, SendOutcome } from './kit/provider.ts'

/**
 * Lets other providers send what this provider's fraud filter blocked (`failoverOnBlock = true`). By default none may: the
 * next one would be paid for the same fraud.
 */
export const withFailoverOnBlock = (provider: Provider): Provider => ({
  ...provider,
  async send(message, signal) {
    return allowOthers(await provider.send(message, signal))
  },
  ...(provider.readCallback && {
    async readCallback(callback, nowMs) {
      const result = await provider.readCallback?.(callback, nowMs)
      return result ? allowOthersByReceipt(result) : { kind: 'unreadable' }
    },
  }),
})

const atRoute = <F extends Failure | null>(failure: F): F =>
  failure?.class === 'blocked_by_carrier' ? { ...failure, at: 'route' } : failure

const allowOthers = (outcome: SendOutcome): SendOutcome =>
  outcome.kind === 'refused' ? { ...outcome, failure: atRoute(outcome.failure) } : outcome

const allowOthersByReceipt = (result: CallbackResult): CallbackResult =>
  result.kind === 'receipts'
    ? {
        ...result,
        receipts: result.receipts.map((receipt) => ({ ...receipt, failure: atRoute(receipt.failure) })),
      }
    : result
