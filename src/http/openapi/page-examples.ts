import { example } from './error-example.ts'

/** One example of every error about the ready page and its sessions. */
export const pageExamples = {
  SESSION_NOT_FOUND: example('NOT_FOUND', 'No session of the last 24 hours with this id.'),
  PAGE_DISABLED: example(
    'FORBIDDEN',
    'The page of this application is off. Set page.enabled, or run otpd app page with --on.',
    { reason: 'PAGE_DISABLED' },
  ),
  INVALID_RETURN_URL: example(
    'INVALID_ARGUMENT',
    'Invalid request. returnUrl: Its origin is not one of page.returnOrigins. Add it with otpd app page --return-origin, or use another URL.',
    {
      details: [
        {
          in: 'body',
          path: 'returnUrl',
          code: 'INVALID',
          message:
            'Its origin is not one of page.returnOrigins. Add it with otpd app page --return-origin, or use another URL.',
        },
      ],
    },
  ),
}
