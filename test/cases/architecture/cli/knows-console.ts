// Nothing imports the console.
import '../console/view.ts'
