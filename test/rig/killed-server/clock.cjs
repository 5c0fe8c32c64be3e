/**
 * Loaded into a server by `NODE_OPTIONS=--require`, in all its threads: its wall clock is CHAOS_CLOCK_MS ahead of the real time.
 * CommonJS, since a preload has to be there before anything else is loaded.
 */
'use strict'
const ahead = Number(process.env.CHAOS_CLOCK_MS)
const RealDate = Date

globalThis.Date = class Date extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + ahead)
    else super(...args)
  }

  static now() {
    return RealDate.now() + ahead
  }
}
