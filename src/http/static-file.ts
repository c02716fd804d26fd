import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

/** A file of this version of otpd, compressed with gzip. */
type StaticFile = { zipped: Blob | Uint8Array<ArrayBuffer>; headers: Record<string, string> }

/** Unzips in another thread: a megabyte takes as long as dozens of calls, and anyone can ask for it. */
const unzip = promisify(gunzip)

const etags = new WeakMap<object, string>()

/**
 * Files whole, once a client without gzip has asked for them: responses share these bytes. With a copy each, clients that ask
 * and break off could make the server hold gigabytes.
 */
const unzipped = new WeakMap<object, Promise<Blob>>()

/** Responds with a file: compressed if the client accepts it, and 304 if the client has it (RFC 9110 §13.1.2). */
export async function fileResponse(
  { headers }: Request,
  { zipped, headers: fileHeaders }: StaticFile,
  status = 200,
): Promise<Response> {
  const bytes = async () => (zipped instanceof Blob ? await zipped.bytes() : zipped)
  const etag = etags.get(zipped) ?? etagOf(await bytes())
  etags.set(zipped, etag)
  const shared = { 'cache-control': 'no-cache', ...fileHeaders, etag, vary: 'Accept-Encoding' }
  const known = (headers.get('if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (status === 200 && (known.includes(etag) || known.includes('*')))
    return new Response(null, { status: 304, headers: shared })
  const acceptsGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|\s|$))/.test(headers.get('accept-encoding') ?? '')
  if (acceptsGzip) return new Response(zipped, { status, headers: { ...shared, 'content-encoding': 'gzip' } })
  const whole = unzipped.get(zipped) ?? bytes().then(unzip).then(toBlob)
  unzipped.set(zipped, whole)
  return new Response(await whole, { status, headers: shared })
}

const toBlob = (bytes: Uint8Array<ArrayBuffer>) => new Blob([bytes])

const etagOf = (bytes: Uint8Array) =>
  `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
