import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import type { OnStep } from '../../shared/progress.ts'
import { backupMacKey } from '../../domain/model/keys.ts'

/** Path of the file with the HMAC of a backup. */
export const macFile = (backup: string) => `${backup}.hmac`

const chunkBytes = 1 << 20

/** Computes the HMAC-SHA256 of a file, in hex. */
export function computeFileMac(path: string, masterKey: Uint8Array, onStep: OnStep = () => {}): string {
  const mac = createHmac('sha256', backupMacKey(masterKey))
  const total = statSync(path).size
  let done = 0
  forEachChunk(path, (chunk) => {
    mac.update(chunk)
    onStep({ step: 'authenticating', done: (done += chunk.length), total, unit: 'bytes' })
  })
  return mac.digest('hex')
}

/** Writes the HMAC of a backup that is about to get its name: complete and synced, or not at all. */
export function writeMacFile(backup: string, mac: string): void {
  const draft = `${macFile(backup)}.${randomUUID()}.part`
  try {
    const file = openSync(draft, 'wx', 0o600)
    writeSync(file, `${mac}\n`)
    fsyncSync(file)
    closeSync(file)
    renameSync(draft, macFile(backup))
  } finally {
    rmSync(draft, { force: true })
  }
}

type MacCheck = 'missing' | 'matches' | 'wrong'

/**
 * Reads a backup once, and compares its HMAC with the file next to it.
 *
 * @param masterKeys those that may have authenticated it
 * @param options.copy path of a new file for the bytes that were read
 */
export function checkFileMac(
  backup: string,
  masterKeys: readonly Uint8Array[],
  { copy, onStep = () => {} }: { copy?: string; onStep?: OnStep | undefined },
): MacCheck {
  const macs = masterKeys.map((masterKey) => createHmac('sha256', backupMacKey(masterKey)))
  const target = copy === undefined ? undefined : openSync(copy, 'wx', 0o600)
  const step = copy === undefined ? 'authenticating' : 'reading the backup'
  const total = statSync(backup).size
  let done = 0
  try {
    forEachChunk(backup, (chunk) => {
      for (const mac of macs) mac.update(chunk)
      if (target !== undefined)
        for (let offset = 0; offset < chunk.length;) offset += writeSync(target, chunk, offset)
      onStep({ step, done: (done += chunk.length), total, unit: 'bytes' })
    })
  } finally {
    if (target !== undefined) closeSync(target)
  }
  return compareDigests(
    backup,
    macs.map((mac) => mac.digest()),
  )
}

/** Compares with the file next to the backup, in constant time. */
function compareDigests(backup: string, digests: readonly Buffer[]): MacCheck {
  if (!existsSync(macFile(backup))) return 'missing'
  const stated = Buffer.from(readFileSync(macFile(backup), 'utf8').trim(), 'hex')
  const isRight = digests.some((digest) => digest.length === stated.length && timingSafeEqual(digest, stated))
  return isRight ? 'matches' : 'wrong'
}

function forEachChunk(path: string, work: (chunk: Uint8Array) => void): void {
  const file = openSync(path, 'r')
  try {
    const chunk = Buffer.alloc(chunkBytes)
    for (;;) {
      const bytes = readSync(file, chunk)
      if (bytes === 0) return
      work(chunk.subarray(0, bytes))
    }
  } finally {
    closeSync(file)
  }
}
