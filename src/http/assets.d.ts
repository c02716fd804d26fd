declare module '#scalar' {
  const path: string
  export default path
}
