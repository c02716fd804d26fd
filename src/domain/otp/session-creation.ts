import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import type { MessageVariables } from '../model/message-variables.ts'
import { unwrap, type Rejected } from '../model/rejected.ts'
import { sessionLifetimeMs, type OtpSession } from '../model/session.ts'
import { hashToken, newToken } from '../model/tokens.ts'
import type { OtpNeeds } from './needs.ts'
import { readNationalPhone, tryReadPhone, type TypedPhone } from './phones.ts'
import { pageDisabled, requireReturnUrl } from './session-refusals.ts'
import { readTemplate } from './templates.ts'

export type NewSession = {
  /** URL to which the browser returns; its origin is one of the page's. */
  returnUrl: string
  /** Sent back to `returnUrl` as it is. */
  state?: string | undefined
  /** The only phone that the end user can verify. */
  phone?: string | undefined
  country?: string | undefined
  locale?: string | undefined
  /** Name of a template of the application. */
  template?: string | undefined
  /** Amount and payee of a payment, for a template that shows them. */
  variables?: MessageVariables | undefined
}

/** 256 bits. */
const tokenBytes = 32

/**
 * Creates a session.
 *
 * @returns the session, and the token for its link, which is shown only once
 * @throws FORBIDDEN (PAGE_DISABLED); INVALID_ARGUMENT for a URL of another origin, and as `readTemplate`;
 *   INVALID_PHONE_NUMBER
 */
export async function createSession(needs: OtpNeeds, application: CallingApplication, input: NewSession) {
  const { store, clock, newId, random } = needs
  const { returnUrl, state = null, locale = null } = input
  const page = await store.read.pages.find(application.id)
  if (!page.enabled) throw pageDisabled()
  requireReturnUrl(returnUrl, page.returnOrigins)
  const phone =
    input.phone === undefined
      ? null
      : await parseTypedPhone(needs, application, { ...input, phone: input.phone })
  // The country chooses a text, and all texts of a template show the same variables.
  const chosen = await readTemplate(needs, application, { country: null }, input)
  const template = chosen && unwrap(chosen)
  const token = newToken('', tokenBytes, random)
  const now = clock.now()
  const session: OtpSession = {
    id: newId('ses'),
    developerId: application.developerId,
    appId: application.id,
    tokenHash: hashToken(token),
    returnUrl,
    state,
    phone,
    locale,
    template: template?.name ?? null,
    // As they were given, so that the application can compare them; a send writes them in the canonical form.
    variables: input.variables ?? null,
    status: 'created',
    requestId: null,
    sends: 0,
    createdAt: now,
    expiresAt: now + sessionLifetimeMs,
  }
  const created = await store.decide<OtpSession | Rejected>({
    preload: { first: () => ({ application }) },
    decide(rows) {
      const refusal = readRefusal(rows, application)
      if (refusal) return { result: refusal, changes: [] }
      return { result: session, changes: [{ kind: 'session', session, isNew: true }] }
    },
  })
  return { session: unwrap(created), token }
}

async function parseTypedPhone(
  needs: OtpNeeds,
  application: CallingApplication,
  typed: TypedPhone,
): Promise<string> {
  const { phone } = tryReadPhone(typed) ?? (await readNationalPhone(needs, application, typed))
  return phone
}
