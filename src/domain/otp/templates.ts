import type { CallingApplication } from '../model/application.ts'
import { invalidRequest } from '../model/errors.ts'
import { variablesOf } from '../model/message-template.ts'
import type { SentTemplate } from '../model/sent-template.ts'
import { canonicalVariables, findVariableFaults, type MessageVariables } from '../model/message-variables.ts'
import type { Phone } from '../model/phone.ts'
import { isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { Channel } from '../model/request.ts'
import type { OtpNeeds } from './needs.ts'
import type { SendInput } from './new-message.ts'

type TemplateInput = Pick<SendInput, 'template' | 'variables' | 'channel' | 'locale'>

/**
 * Reads the template of a send, and chooses its text. A send without one reads nothing.
 *
 * @returns null for the built-in texts; the refusal INVALID_ARGUMENT for an unknown template, for variables that it does
 *   not show or needs, and for a channel that cannot show them. It is a value, so that a repeated call gets its first
 *   result although the template is gone.
 */
export async function readTemplate(
  { store, delivery }: Pick<OtpNeeds, 'store' | 'delivery'>,
  { id: appId, developerId }: Pick<CallingApplication, 'id' | 'developerId'>,
  { country }: Pick<Phone, 'country'>,
  input: TemplateInput,
): Promise<SentTemplate | Rejected | null> {
  const { template: name, locale = null } = input
  if (name === undefined)
    return input.variables ? refuse('variables', 'Name a template that shows them, as template.') : null
  const template = await store.read.templates.find(appId, name)
  if (!template)
    return refuse('template', 'The application has no template with this name. Create it, or name another.')
  const application = await store.read.applications.find(developerId, appId)
  const applicationDefaultLocale = application?.defaultLocale ?? null
  const chosen = delivery.chooseText(template.texts, { locale, applicationDefaultLocale, country })
  const variables = readVariables(chosen.text, input)
  return isRejected(variables) ? variables : { name, ...chosen, variables }
}

/** Refuses to call with the code of a payment: INVALID_ARGUMENT. Undefined for any other message. */
export const refuseCall = (
  variables: MessageVariables | null | undefined,
  channel: Channel | undefined,
): Rejected | undefined =>
  variables && channel === 'voice'
    ? refuse('channel', 'A call cannot say amount and payee. Choose another channel.')
    : undefined

/** Checks the variables of a send against the text that is to show them. */
function readVariables(
  text: string,
  { variables, channel }: TemplateInput,
): MessageVariables | Rejected | null {
  const isPayment = variablesOf(text).length > 0
  if (!isPayment)
    return variables ? refuse('variables', 'The template shows none. Leave them out, or name another.') : null
  if (!variables) return refuse('variables', 'The template needs amount and payee.')
  const refusedCall = refuseCall(variables, channel)
  if (refusedCall) return refusedCall
  const canonical = canonicalVariables(variables)
  const faults = findVariableFaults(canonical)
  if (faults.length === 0) return canonical
  return reject(
    invalidRequest(
      faults.map(({ name, message }) => ({
        in: 'body',
        path: `variables.${name}`,
        code: 'INVALID',
        message,
      })),
    ),
  )
}

const refuse = (path: string, message: string): Rejected =>
  reject(invalidRequest([{ in: 'body', path, code: 'INVALID', message }]))
