/** A message of a request that a provider accepted. */
export type AcceptedMessage<C> = { cell: C; sentAt: number }

/**
 * Attributes the end of a request to its messages: the newest one carried the code that was verified, the ones before it did
 * not; if the request expired, none did.
 *
 * @param accepted in the order in which they were sent
 */
export const attributeOutcome = <C>(accepted: ReadonlyArray<AcceptedMessage<C>>, isVerified: boolean) =>
  accepted.map(({ cell, sentAt }, index) => ({
    cell,
    sentAt,
    isVerified: isVerified && index === accepted.length - 1,
  }))
