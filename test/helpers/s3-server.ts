/** A request that reached the server. */
type S3Call = { method: string; key: string; query: URLSearchParams }

/** Answers instead of the server; undefined lets it answer. */
type Fault = (call: S3Call) => Response | Promise<Response> | undefined

/** Error as S3 services word it. */
export const s3Error = (status: number, code: string, message: string) =>
  new Response(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`, {
    status,
    headers: { 'content-type': 'application/xml' },
  })

/** Starts a small S3 server with one bucket, `backups`, that keeps its objects in memory and can be made to fail. */
export function startS3Server() {
  const objects = new Map<string, Buffer>()
  const uploads = new Map<string, Map<number, Buffer>>()
  const calls: S3Call[] = []
  let fault: Fault = () => undefined
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url)
      const [, bucket = '', ...rest] = decodeURIComponent(url.pathname).split('/')
      const call = { method: request.method, key: rest.join('/'), query: url.searchParams }
      calls.push(call)
      const body = Buffer.from(await request.arrayBuffer())
      const failed = await fault(call)
      if (failed) return failed
      if (bucket !== 'backups') return s3Error(404, 'NoSuchBucket', 'The specified bucket does not exist')
      return answer(call, body, request.headers.get('range'))
    },
  })

  function answer({ method, key, query }: S3Call, body: Buffer, range: string | null): Response {
    if (query.get('list-type') === '2') return list(query.get('prefix') ?? '')
    if (method === 'POST' && query.has('uploads')) {
      const id = `upload${uploads.size}`
      uploads.set(id, new Map())
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
    }
    const upload = uploads.get(query.get('uploadId') ?? '')
    if (upload && method === 'PUT') {
      upload.set(Number(query.get('partNumber')), body)
      return new Response(null, { headers: { etag: `"${query.get('partNumber')}"` } })
    }
    if (upload && method === 'POST') {
      const parts = [...upload].toSorted(([a], [b]) => a - b)
      objects.set(key, Buffer.concat(parts.map(([, part]) => part)))
      return xml('<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>')
    }
    if (method === 'DELETE') {
      objects.delete(key)
      return new Response(null, { status: 204 })
    }
    if (method === 'PUT') {
      objects.set(key, body)
      return new Response(null, { headers: { etag: '"1"' } })
    }
    const object = objects.get(key)
    if (!object) return s3Error(404, 'NoSuchKey', 'The specified key does not exist.')
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
    if (start === undefined) return new Response(new Uint8Array(object))
    return new Response(new Uint8Array(object.subarray(Number(start), Number(end) + 1)), { status: 206 })
  }

  /** Two objects a page, so that pages are followed. */
  function list(prefix: string): Response {
    const after = calls.at(-1)?.query.get('continuation-token') ?? ''
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).toSorted()
    const contents = keys.slice(0, 2).map((key) => {
      const size = objects.get(key)?.length ?? 0
      return `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`
    })
    const next = keys.length > 2 ? `<NextContinuationToken>${keys[1]}</NextContinuationToken>` : ''
    return xml(
      `<ListBucketResult><IsTruncated>${keys.length > 2}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
    )
  }

  return {
    url: `http://127.0.0.1:${server.port}`,
    /** Objects by key; a test may change them. */
    objects,
    calls,
    /** Makes some calls fail. */
    failWith: (newFault: Fault) => void (fault = newFault),
    stop: () => server.stop(true),
  }
}

const xml = (text: string) =>
  new Response(`<?xml version="1.0"?>${text}`, { headers: { 'content-type': 'application/xml' } })
