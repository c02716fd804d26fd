import texts from './texts.json' with { type: 'json' }

/** The texts of the ready page. `{phone}`, `{count}`, `{time}` and `{channel}` are replaced. */
export type PageTexts = (typeof texts)['en']

/**
 * The texts by locale, in the languages of the messages. Counts come after a colon, so that no language needs plural forms;
 * durations are written by `Intl`.
 */
export const pageTexts: Readonly<Record<string, PageTexts>> = texts

/** Texts where no other language fits. */
export const englishTexts: PageTexts = texts.en
