import { join } from 'node:path'
import { startExternalProgram, waitFor } from './external-program.ts'

const python = process.env['OTPD_TEST_SMPP_PYTHON']

export const hasSmpp34 = python !== undefined && python !== ''
if (!hasSmpp34)
  process.stderr.write(
    'Skipped: codes through a third-party SMSC. To run them: python3 -m venv v && v/bin/pip install ' +
      'smpp34==1.5.0, then set OTPD_TEST_SMPP_PYTHON to v/bin/python.\n',
  )

export type Smpp34 = Awaited<ReturnType<typeof startSmpp34>>

/** Message as the SMSC printed it. */
type Smpp34Message = { from: string; to: string; dataCoding: number; hex: string }

/** Starts an SMSC built with the Python library `smpp34`, which shares no code with ours. It sends delivery receipts. */
export async function startSmpp34() {
  const smsc = await startExternalProgram([python ?? '', join(import.meta.dir, 'smpp34-smsc.py')], '}\n')
  const eventsWith = <T>(name: string): T[] =>
    smsc
      .output()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
      .filter((event) => name in event)

  return {
    port: eventsWith<{ port: number }>('port')[0]?.port ?? 0,
    /** Waits for the message to this phone. */
    async waitForMessageTo(phone: string) {
      const message = await waitFor(`message to ${phone} at the SMSC`, () =>
        eventsWith<Smpp34Message>('hex').find(({ to }) => `+${to}` === phone),
      )
      return { ...message, text: decode(message) }
    },
    stop: smsc.stop,
  }
}

/** Characters of our messages whose GSM code differs from ASCII (3GPP TS 23.038 §6.2.1). */
const gsmCharacters: Readonly<Record<string, string>> = { '\x00': '@', '\x05': 'é' }

function decode({ dataCoding, hex }: Smpp34Message): string {
  const bytes = Buffer.from(hex, 'hex')
  if (dataCoding === 8) return bytes.swap16().toString('utf16le')
  return [...bytes.toString('latin1')].map((character) => gsmCharacters[character] ?? character).join('')
}
