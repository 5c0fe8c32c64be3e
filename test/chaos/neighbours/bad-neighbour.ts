/**
 * The process of the hostile tenant. It takes its job as JSON from standard input, since a password has no place among
 * arguments, and prints the tally. Its connections end with it, as those of a process that was killed.
 */
import { text } from 'node:stream/consumers'
import { perform } from './deeds.ts'

const tally = await perform(JSON.parse(await text(process.stdin)))
process.stdout.write(JSON.stringify(tally), () => process.exit(0))
