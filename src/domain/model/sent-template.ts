import type { TemplateText } from './message-template.ts'
import type { MessageVariables } from './message-variables.ts'

/** Text that a request has from its send on. Its messages show it, even if the template is changed or deleted. */
export type SentTemplate = TemplateText & {
  name: string
  /** Amount and payee of a payment; null for a text that shows none. */
  variables: MessageVariables | null
}
