// oxlint-disable-next-line import/no-unassigned-import -- it sets what the imports below read while they load
import './environment.ts'
import { runCommandLine } from './program.ts'
import { processIo } from './terminal/terminal.ts'

// `otpd … | head -1` closes the pipe early; that is the reader's choice and no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
// Nothing on stderr is worth more than the work: a server goes on without the reader of its log.
process.stderr.on('error', () => {})

const exitCode = await runCommandLine(process.argv.slice(2), processIo())
// Ended by hand once everything is written: an idle connection to the server would keep the process for a while.
// Not with an empty write: Bun calls back from that at once, and a pipe holds 64 KB until somebody reads.
process.stdout.end(() => process.stderr.end(() => process.exit(exitCode)))
