import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayMs, minuteMs } from '../../src/shared/durations.ts'
import { openFiles } from '../../src/tls/files.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'

test.skipIf(!hasOpenssl)('a certificate that is not valid yet is served once it is', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-files-'))
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const write = ({ cert, key }: ReturnType<typeof makeCertificate>) => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
  }
  let now = Date.now() + minuteMs
  const served: string[] = []
  const lines: string[] = []
  try {
    write(makeCertificate('old.test'))
    const source = openFiles({
      certFile,
      keyFile,
      wall: { now: () => now },
      log: {
        info: (msg) => void lines.push(msg),
        warn: (msg) => void lines.push(msg),
        error: (msg, { problem }) => void lines.push(`${msg}: ${String(problem)}`),
      },
      onPair: ({ facts }) => void served.push(...facts.names),
      onOutcome: () => {},
    })
    if ('fault' in source) throw new Error(source.fault)
    write(makeCertificate('new.test'))
    now -= dayMs
    await source.look(false)
    await source.look(false)
    expect(lines).toEqual([expect.stringContaining('is valid from')])
    // SIGHUP says again what is wrong.
    await source.look(true)
    expect(lines).toHaveLength(2)
    now += dayMs
    await source.look(false)
    expect(served).toEqual(['new.test'])
    await source.look(false)
    expect(served).toHaveLength(1)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
