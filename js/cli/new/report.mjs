// Your work goes here. edgelect calls it where it is this member's turn, and nowhere else at the same time.
//
// token:  a number that only grows, from one leader to the next. Send it along with what you change, and let the other
//         side refuse a lower one: that stops a member that was frozen in the midst of its work and goes on too late.
// slot:   of a scheduled job, the time that is run, in milliseconds. A token does not stop a second run: give mail or a
//         payment this as the key by which the service knows a repetition.
// signal: fires when this member must stop. Give it to `fetch`, to your database, to whatever takes long.
export const writeReport = async ({ token, signal }) => {
  const report = { writtenAt: new Date().toISOString(), token };
  // Right before a change that cannot be taken back.
  signal.throwIfAborted();
  console.log(`the report: ${JSON.stringify(report)}`);
};
