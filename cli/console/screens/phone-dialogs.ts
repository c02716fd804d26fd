import { CliError, exitCodes } from '../../terminal/errors.ts'
import type { Dialog, DialogNeeds } from '../console-context.ts'

/** @param shown the number as it is shown: it may be masked */
type DialogPhone = { phone: string; shown: string }

/** Resets the limits of a phone number. */
export const unlockDialog = ({ api, toast }: DialogNeeds, { phone, shown }: DialogPhone): Dialog => ({
  kind: 'form',
  title: 'Unlock a phone number',
  lines: [`Forgets the wrong codes and recent sends of ${shown}, so that it can get and enter codes again.`],
  fields: [],
  verb: 'unlock',
  async submit() {
    const call = { params: { phoneNumber: phone } }
    const { unlocked } = await api
      .asDeveloper('POST', '/v1/users/:phoneNumber/unlock', call)
      .then(({ data }) => data, orNothing({ unlocked: false }))
    toast(unlocked ? `${shown} is unlocked` : `${shown} was not locked`, unlocked ? 'good' : 'neutral')
  },
})

/** Erases a phone number from all records. */
export const eraseDialog = ({ api, toast }: DialogNeeds, { phone, shown }: DialogPhone): Dialog => ({
  kind: 'confirm',
  title: 'Erase a phone number',
  lines: [
    `Cancels the codes of ${shown}, deletes its user, and erases the number from all records. This cannot be undone.`,
    'Backups made earlier still contain it.',
  ],
  confirmText: 'erase',
  verb: 'erase the number',
  async submit() {
    const call = { params: { phoneNumber: phone }, query: { erase: 'true' as const } }
    await api.asDeveloper('DELETE', '/v1/users/:phoneNumber', call)
    toast(`${shown} is erased`, 'good')
  },
})

/** Replaces NOT_FOUND, which says that nothing is kept about a phone. */
const orNothing =
  <T>(nothing: T) =>
  (error: unknown): T => {
    if (error instanceof CliError && error.exitCode === exitCodes.notFound) return nothing
    throw error
  }
