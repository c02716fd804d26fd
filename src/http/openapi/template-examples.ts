import { example } from './error-example.ts'

const missingPayee =
  'The placeholder {payee} is missing. The message of a payment must show its amount and its payee.'

/** One example of every error about the templates of an application. */
export const templateExamples = {
  TEMPLATE_NOT_FOUND: example('NOT_FOUND', 'This application has no template with this name.'),
  TEMPLATE_LIMIT_REACHED: example(
    'CONFLICT',
    'An application can have at most 20 templates. Delete one first.',
    { reason: 'TEMPLATE_LIMIT_REACHED', metadata: { limit: 20 } },
  ),
  INVALID_TEMPLATE: example('INVALID_ARGUMENT', `Invalid request. texts.en: ${missingPayee}`, {
    details: [{ in: 'body', path: 'texts.en', code: 'INVALID', message: missingPayee }],
  }),
}
