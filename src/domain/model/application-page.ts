/** The ready page of an application, as its developer has set it up. */
export type ApplicationPage = {
  enabled: boolean
  /** Name in the header; null: the name of the application. */
  name: string | null
  /** Image as a data URL. */
  logo: string | null
  /** Colour of buttons, as `#rrggbb`. */
  colour: string | null
  /** Origins of the URLs to which the page may return, as browsers write them. */
  returnOrigins: readonly string[]
}

/** The page of an application that has never set one up. */
export const defaultPage: ApplicationPage = {
  enabled: false,
  name: null,
  logo: null,
  colour: null,
  returnOrigins: [],
}

export const returnOriginsMax = 10
