import type { S3Secrets, S3Settings } from '../config/backup.ts'
import { isRecord } from '../shared/json.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'
import { storageError, type BucketLabels } from './storage-errors.ts'

/** An object with its name below the prefix. */
export type BucketObject = { name: string; bytes: number }

export type Bucket = ReturnType<typeof openBucket>

/** How long the service may take to answer, without the time that the bytes of the call take. */
const answerMsMax = 30_000
/** The slowest line that is waited for. */
const bytesPerMsMin = 64
/** S3 takes 10,000 parts of 5 MiB or more. */
const partsMax = 9_000
const partBytesMin = 5 * 1024 * 1024
const readBytes = 4 * 1024 * 1024

/**
 * Opens the objects of a bucket below a prefix.
 *
 * @param options.answerMs how long the service may take to answer; for tests
 * @throws OperationRefused NO_CREDENTIALS
 */
export function openBucket(
  target: { bucket: string; prefix: string },
  { settings, secrets }: { settings: S3Settings; secrets: S3Secrets | null },
  options: { answerMs?: number } = {},
) {
  const { bucket, prefix } = target
  const { endpoint, region, accessKeyId } = settings
  const { answerMs = answerMsMax } = options
  const label = `s3://${[bucket, prefix].filter(Boolean).join('/')}`
  const labels: BucketLabels = { label, endpoint }
  if (accessKeyId === null || secrets === null)
    throw new OperationRefused(
      'NO_CREDENTIALS',
      `there are no credentials for ${label}`,
      'Set OTPD_BACKUP_ACCESS_KEY_ID and OTPD_BACKUP_SECRET_ACCESS_KEY_FILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    )
  const { secretAccessKey, sessionToken } = secrets
  // Everything is named, because the client would take what is missing from variables of its own.
  const client = new Bun.S3Client({
    bucket,
    endpoint,
    region,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== null && { sessionToken }),
  })
  const key = (name: string) => (prefix === '' ? name : `${prefix}/${name}`)

  /** Waits for a call that moves `bytes`. @throws OperationRefused with the service's own word */
  async function answered<T>(call: Promise<T>, bytes = 0, name?: string): Promise<T> {
    const limitMs = answerMs + bytes / bytesPerMsMin
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject({ code: 'Timeout', limitMs }), limitMs)
    try {
      return await Promise.race([call, promise])
    } catch (error) {
      throw storageError(error, labels, name === undefined ? undefined : `${label}/${name}`)
    } finally {
      clearTimeout(timer)
    }
  }

  const readRange = (name: string, start: number, end: number) =>
    answered(client.file(key(name)).slice(start, end).bytes(), end - start, name)

  return {
    label,

    /** Lists the objects directly below the prefix. */
    async list(): Promise<BucketObject[]> {
      const start = prefix === '' ? '' : `${prefix}/`
      const objects: BucketObject[] = []
      let continuationToken: string | undefined
      do {
        const page = await answered(
          client.list({ prefix: start, ...(continuationToken !== undefined && { continuationToken }) }),
        )
        for (const { key: found, size = 0 } of page.contents ?? []) {
          const name = found.slice(start.length)
          if (found.startsWith(start) && name !== '' && !name.includes('/'))
            objects.push({ name, bytes: size })
        }
        continuationToken = page.isTruncated === true ? page.nextContinuationToken : undefined
      } while (continuationToken !== undefined)
      return objects
    },

    /**
     * Uploads an object. It gets its name when all of it has arrived.
     *
     * @param bytesMax size that it will not exceed by much
     * @returns its size in bytes
     */
    async write(name: string, content: AsyncIterable<Uint8Array>, bytesMax: number): Promise<number> {
      const partSize = Math.max(partBytesMin, Math.ceil(bytesMax / partsMax))
      const writer = client.file(key(name)).writer({ partSize, queueSize: 1, retry: 3 })
      let bytes = 0
      for await (const piece of content) {
        bytes += piece.length
        // After a failure the writer is left alone: `end`, also with an error, would complete what has arrived so far.
        await answered(Promise.resolve(writer.write(piece)), partSize)
        await answered(Promise.resolve(writer.flush()), partSize)
      }
      await answered(Promise.resolve(writer.end()), partSize)
      return bytes
    },

    /** Uploads a small object at once. */
    async writeText(name: string, text: string): Promise<void> {
      await answered(client.write(key(name), text, { retry: 3 }), text.length)
    },

    /** Reads a small object; undefined if there is none. */
    async readText(name: string): Promise<string | undefined> {
      try {
        return await answered(client.file(key(name)).text(), 0, name)
      } catch (error) {
        if (isRecord(error) && error['reason'] === 'FILE_MISSING') return undefined
        throw error
      }
    },

    readRange,

    /** Reads an object from a position to its end, a few megabytes at a time. */
    async *read({ name, bytes }: BucketObject, from: number): AsyncGenerator<Uint8Array> {
      for (let start = from; start < bytes; start += readBytes)
        yield await readRange(name, start, Math.min(bytes, start + readBytes))
    },

    /** Deletes an object, if it is there. */
    async remove(name: string): Promise<void> {
      await answered(client.delete(key(name)), 0, name)
    },
  }
}
