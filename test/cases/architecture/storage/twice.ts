// A name that another file exports too.
export interface Queue {
  readonly name: string
}
