import { constants, createHash, createHmac, createSign, sign, type KeyObject } from 'node:crypto'

/** A callback of a carrier with its signature, without the URL. */
export type SignedCallback = { headers: Record<string, string>; body: string }

/** Signs as Telnyx's page on webhooks says: Ed25519 over timestamp and body. */
export function signAsTelnyx(body: string, key: KeyObject, timestamp: string): SignedCallback {
  const signature = sign(null, Buffer.from(`${timestamp}|${body}`), key).toString('base64')
  return { headers: { 'telnyx-timestamp': timestamp, 'telnyx-signature-ed25519': signature }, body }
}

/** Signs as Prelude: RSA-PSS over the body. */
export function signAsPrelude(body: string, privateKey: KeyObject): SignedCallback {
  const key = { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  const signature = sign('sha256', Buffer.from(body), key).toString('base64url')
  return { headers: { 'x-webhook-signature': `rsassa-pss-sha256=${signature}` }, body }
}

/** Signs as Vonage's page on signed webhooks says: a JWT with the hash of the body. */
export function signAsVonage(body: string, secret: string, issuedAt: number): SignedCallback {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = { iat: issuedAt, payload_hash: createHash('sha256').update(body).digest('hex') }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  const signature = createHmac('sha256', secret).update(signed).digest('base64url')
  return { headers: { authorization: `Bearer ${signed}.${signature}` }, body }
}

/** Signs an envelope as Amazon SNS: the lines of its fields, in the order of their names. */
export function signAsSns(envelope: Record<string, string>, key: KeyObject): SignedCallback {
  const names =
    envelope['Type'] === 'Notification'
      ? ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
      : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const text = names
    .filter((name) => envelope[name] !== undefined)
    .map((name) => `${name}\n${envelope[name]}\n`)
    .join('')
  const algorithm = envelope['SignatureVersion'] === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
  const Signature = createSign(algorithm).update(text).sign(key, 'base64')
  return {
    body: JSON.stringify({ ...envelope, Signature }),
    headers: {
      'content-type': 'text/plain; charset=UTF-8',
      'x-amz-sns-message-type': envelope['Type'] ?? '',
    },
  }
}
