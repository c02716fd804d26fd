// oxlint-disable-next-line import/no-unassigned-import -- it sets what the imports below read while they load
import './environment.ts'
import { writeSync } from 'node:fs'
import { runCommandLine } from './program.ts'
import { processIo } from './terminal/terminal.ts'

process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // `otpd … | head -1` closes the pipe early; that is not a failure.
  if (code === 'EPIPE') process.exit(0)
  writeSync(2, `Error: The output cannot be written (${code}).\n  Check that the disk has space.\n`)
  process.exit(1)
})
// A closed stderr must not end the process: a server keeps running when its log is no longer read.
process.stderr.on('error', () => {})

const exitCode = await runCommandLine(process.argv.slice(2), processIo())
// Exit explicitly once everything is written: an idle keep-alive connection would delay the exit.
// `end`, not an empty write: Bun calls back from an empty write at once, while up to 64 KB are still in the pipe.
process.stdout.end(() => process.stderr.end(() => process.exit(exitCode)))
