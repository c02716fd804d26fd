import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import type { HostRotation } from '../../src/host/host.ts'
import { confirm } from '../terminal/confirm.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import type { Output } from '../terminal/output.ts'
import { listShort, printable } from '../terminal/text.ts'

type RotateOptions = HostFlags & { newKeyFile?: string; compromised?: boolean; finish?: boolean }

const rotateHelp = `
The master key encrypts the data keys in the database, and nothing else.
Replacing it takes a moment; a running server goes on. Keep a copy of the new
key elsewhere. The old one stays in the data directory, for backups of its
time: otpd restore finds it there, and otpd doctor says when no backup needs it.

A key from a variable, a file or a credential:
  1. otpd admin rotate-master-key --new-key-file new.key
  2. start every node with the new key
  3. otpd admin rotate-master-key --finish, with the new key configured

--compromised also replaces the data keys: pending codes are canceled, ID tokens
and callback URLs end, and the server encrypts old rows again in the background.
In the three steps above this happens with the third, for which nodes that share
a PostgreSQL database must be stopped.`

/** Registers the command that replaces the master key. */
export function addAdminKeyCommands(admin: CliCommand) {
  addHostFlags(
    admin.command('rotate-master-key').description('replace the master key, even while the server runs'),
  )
    .option('--new-key-file <file>', 'the new key; needed unless it is master.key in the data directory')
    .option('--compromised', 'the old key may be in wrong hands: replace the data keys too')
    .option('--finish', 'remove the old key, once all nodes run with the new one')
    .addHelpText('after', rotateHelp)
    .examples('otpd admin rotate-master-key --yes', 'otpd admin rotate-master-key --compromised --yes')
    .run(async (context, options: RotateOptions) => {
      const { io, output } = context
      const { newKeyFile, compromised = false, finish = false } = options
      const rotate = {
        newKeyFile: newKeyFile === undefined ? undefined : resolve(io.workingDirectory, newKeyFile),
        compromised,
        finish,
      }
      // A new key from elsewhere opens the database besides the old one, until --finish.
      if (compromised || finish || newKeyFile === undefined) {
        await confirm(context, {
          find: async () => 'rotate-master-key',
          describe: async (name) => ({
            question: compromised ? dataKeysQuestion : masterKeyQuestion,
            name,
          }),
        })
      }
      const rotation = await withDataDir(context, options, (host, needs) =>
        host.rotateMasterKey(needs, rotate),
      )
      output.printData(rotation, () => rotationText(rotation, output))
      for (const note of rotationNotes(rotation, compromised)) output.note(note)
    })
}

const dataKeysQuestion = 'Replace the data keys? Pending codes, ID tokens and callback URLs end.'
const masterKeyQuestion =
  'Replace the master key? The old one no longer opens the database, only backups of its time.'

function rotationText(rotation: HostRotation, { details, done, formatFacts }: Output): string {
  const title =
    rotation.state === 'both' ? 'Both master keys open the database' : 'The master key was replaced'
  const urls = Object.entries(rotation.callbackUrls).map(([name, url]): [string, string] => [
    printable(name),
    url,
  ])
  const text = details(done(title), [
    ['Old key', rotation.keptKey && printable(rotation.keptKey.path)],
    ['Canceled codes', rotation.areDataKeysNew ? String(rotation.canceledCodes) : null],
  ])
  return urls.length === 0 ? text : `${text}\nNew receipt URLs:\n${formatFacts(urls)}`
}

function rotationNotes({ state, areDataKeysNew, keptKey }: HostRotation, compromised: boolean): string[] {
  if (state === 'both') {
    const ending = compromised ? ', which then also replaces the data keys' : ''
    return [`Start every node with the new key, then run: otpd admin rotate-master-key --finish${ending}.`]
  }
  const neededBy = keptKey?.neededBy ?? []
  const needing = neededBy.length === 0 ? '' : ` (${listShort(neededBy.map(printable))})`
  const notes = [
    'Keep a copy of the new key elsewhere.',
    keptKey
      ? `Earlier backups${needing} need the old key; otpd restore finds it in the data directory. otpd doctor says when no backup needs it.`
      : 'Earlier backups need the old key: keep it, and name it with otpd restore --master-key-file.',
  ]
  if (areDataKeysNew) {
    notes.push(
      'Callback URLs have changed: enter the new ones at your providers (otpd provider list shows them).',
      'The server encrypts old rows again in the background: otpd doctor.',
    )
  }
  return notes
}
