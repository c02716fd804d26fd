import type { Client } from './client.ts'

export type SimulatedApp = {
  id: string
  /** Changes when a credential is rotated. */
  headers: Record<string, string>
}

export type Shop = { token: Record<string, string>; apps: SimulatedApp[]; webhookIds: string[] }

export const adminEmail = 'ada@example.com'
export const adminPassword = 'correct horse battery staple'
export const receiverHost = 'hooks.example'

/** Logs in, and creates two projects with two applications each and a webhook endpoint for each. */
export async function createShop({ call }: Client): Promise<Shop> {
  async function create<T>(path: string, headers: Record<string, string>, body: object): Promise<T> {
    const { answer } = await call('POST', path, { headers, body })
    if (answer?.status !== 201) throw new Error(`POST ${path}: ${answer?.status} ${answer?.text}`)
    return answer.data as T
  }
  const form = new URLSearchParams({ grant_type: 'password', username: adminEmail, password: adminPassword })
  const login = await call('POST', '/v1/auth/token', {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
  const { id_token: idToken } = JSON.parse(login.answer?.text ?? '{}') as { id_token?: string }
  if (idToken === undefined) throw new Error(`the login failed: ${login.answer?.text}`)
  const bearer = { authorization: `Bearer ${idToken}` }
  const expiresAt = null
  const { token } = await create<{ token: string }>('/v1/tokens', bearer, {
    name: 'simulation',
    scopes: ['write'],
    expiresAt,
  })
  const headers = { authorization: `Bearer ${token}` }
  const apps: SimulatedApp[] = []
  const webhookIds: string[] = []
  for (const name of ['one', 'two']) {
    const project = await create<{ id: string }>('/v1/projects', headers, { name })
    for (const environment of ['live', 'test']) {
      const body = { name: `${name} ${environment}`, projectId: project.id, environment }
      const app = await create<{ id: string; clientId: string; clientSecret: string; apiKey: string }>(
        '/v1/applications',
        headers,
        body,
      )
      apps.push({
        id: app.id,
        headers: {
          'x-client-id': app.clientId,
          'x-client-secret': app.clientSecret,
          'x-api-key': app.apiKey,
        },
      })
      const template = await call('PUT', `/v1/applications/${app.id}/templates/payment`, {
        headers,
        body: { texts: { en: 'Pay {amount} to {payee}: {code}' } },
      })
      if (template.answer?.status !== 200) throw new Error(`the template: ${template.answer?.text}`)
      const url = `https://${receiverHost}/${app.id}`
      const webhook = await create<{ id: string }>('/v1/webhooks', headers, {
        appId: app.id,
        url,
        events: ['*'],
      })
      webhookIds.push(webhook.id)
    }
  }
  return { token: headers, apps, webhookIds }
}
