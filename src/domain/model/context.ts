import { indexHash, upgradeHash, type HashForm, type Keys } from './keys.ts'
import { networkOf } from './network.ts'

/** 72 bits: enough that the contexts of one developer do not collide. */
export const contextHashForm: HashForm = (digest) => digest.toString('base64url').slice(0, 12)

/**
 * Hashes what identifies the end user behind a send: the network of `clientIp`, and the device. Two hashes at
 * most, none if the backend told neither. They differ between developers, so that no table links the users of
 * one to those of another.
 */
export function hashContexts(
  keys: Pick<Keys, 'context'>,
  developerId: string,
  sender: { clientIp: string | null; deviceId: string | null },
): string[] {
  if (sender.clientIp === null && sender.deviceId === null) return []
  const network = sender.clientIp === null ? undefined : networkOf(sender.clientIp)
  const hash = (kind: string, value: string) =>
    indexHash(keys.context, `${developerId}\n${kind}\n${value}`, contextHashForm)
  return [
    ...(network === undefined ? [] : [hash('network', network)]),
    ...(sender.deviceId === null ? [] : [hash('device', sender.deviceId)]),
  ]
}

/** Tells which of the contexts of a send is its device: the one after the network. */
export const deviceOf = ({
  clientIp,
  contexts,
}: {
  clientIp: string | null
  contexts: readonly string[]
}): string | undefined => contexts[clientIp === null || networkOf(clientIp) === undefined ? 0 : 1]

/** Brings the hash of a context to the newest version of the key. */
export const upgradeContext = (keys: Pick<Keys, 'context'>, hash: string): string =>
  upgradeHash(keys.context, hash, contextHashForm)
