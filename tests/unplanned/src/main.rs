//! Writes every change of some Rust files into them at once, each behind its number: `unplanned FOLDER FILE…`. One build serves
//! them all. What was changed goes to `FOLDER/unplanned.json`.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use proc_macro2::Span;
use serde_json::json;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprIf, ExprMethodCall, ExprUnary,
    ImplItemConst, ImplItemFn, ItemConst, ItemEnum, ItemFn, ItemImpl, ItemMod, ItemStatic, Meta,
    ReturnType, Signature, Stmt, UnOp,
};

/// A place, and what else may stand there.
struct Place {
    start: usize,
    end: usize,
    others: Vec<String>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Operator,
    Not,
    Condition,
    Guard,
    Method,
    Statement,
    /// What a function gives at once.
    Body,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Operator => "operator",
            Kind::Not => "not",
            Kind::Condition => "condition",
            Kind::Guard => "guard",
            Kind::Method => "method",
            Kind::Statement => "statement",
            Kind::Body => "body",
        }
    }
}

struct Finder<'a> {
    text: &'a str,
    places: Vec<Place>,
    /// Nothing can be asked at compile time.
    constant: bool,
}

const SWAPS: [(&str, &str); 12] = [
    ("min", "max"),
    ("max", "min"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("saturating_sub", "saturating_add"),
    ("saturating_add", "saturating_sub"),
    ("is_some_and", "is_none_or"),
    ("is_none_or", "is_some_and"),
    ("any", "all"),
    ("all", "any"),
    ("is_ok", "is_err"),
    ("is_err", "is_ok"),
];

fn others(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["/"],
        BinOp::Div(_) => &["*"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitAndAssign(_) => &["|="],
        _ => &[],
    }
}

fn changes(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_) | BinOp::BitAndAssign(_)
    )
}

/// A `let` in a condition can't stand alone.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

/// A planted bug is one that somebody thought of.
fn is_planted(expr: &Expr) -> bool {
    match expr {
        Expr::Macro(found) => found.mac.path.is_ident("planted"),
        Expr::Unary(unary) => is_planted(&unary.expr),
        _ => false,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().contains("test"),
        meta => meta.path().is_ident("test"),
    })
}

impl Finder<'_> {
    fn of(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn add(&mut self, span: Span, others: Vec<String>, kind: Kind) {
        let range = span.byte_range();
        // The lines of the copy are those of the file, so that what the compiler says of one can be found.
        let in_line =
            |text: String| if text.contains("//") { text } else { text.replace('\n', " ") };
        let others: Vec<String> = others.into_iter().map(in_line).collect();
        if !self.constant && !others.is_empty() {
            self.places.push(Place { start: range.start, end: range.end, others, kind });
        }
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        let before = self.constant;
        self.constant = signature.constness.is_some();
        let start = block.brace_token.span.open().byte_range().end;
        let gives: String = match &signature.output {
            ReturnType::Type(_, gives) => self.of(gives.span()).split_whitespace().collect(),
            ReturnType::Default => String::new(),
        };
        let values: &[&str] = match gives.as_str() {
            "bool" => &["true", "false"],
            "u64" | "i64" | "u32" | "usize" => &["0", "1"],
            "String" => &["String::new()"],
            gives if gives.starts_with("Option<") => &["None"],
            gives if gives.starts_with("Result<(),") => &["Ok(())"],
            _ => &[],
        };
        if !self.constant
            && !values.is_empty()
            && !block.stmts.is_empty()
            && signature.asyncness.is_none()
        {
            let others = values.iter().map(|value| (*value).to_owned()).collect();
            self.places.push(Place { start, end: start, others, kind: Kind::Body });
        }
        visit::visit_block(self, block);
        self.constant = before;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, _: &'ast ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast ImplItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast ItemEnum) {}

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let shows = of.is_some_and(|last| last.ident == "Debug" || last.ident == "Display");
        if !is_test(&item.attrs) && !shows {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast ExprBinary) {
        let sides = [&*expr.left, &*expr.right];
        if !sides.iter().any(|side| has_let(side) || is_planted(side)) {
            let [left, right] = sides.map(|side| self.of(side.span()).to_owned());
            let others = others(&expr.op).iter().map(|op| format!("{left} {op} {right}")).collect();
            self.add(expr.span(), others, Kind::Operator);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast ExprUnary) {
        if matches!(expr.op, UnOp::Not(_)) && !is_planted(&expr.expr) {
            let inner = self.of(expr.expr.span()).to_owned();
            self.add(expr.span(), vec![inner], Kind::Not);
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_if(&mut self, expr: &'ast ExprIf) {
        // Of an equality, the other operator says as much.
        let equals =
            matches!(&*expr.cond, Expr::Binary(ExprBinary { op: BinOp::Eq(_) | BinOp::Ne(_), .. }));
        if !equals && !has_let(&expr.cond) && !is_planted(&expr.cond) {
            self.add(
                expr.cond.span(),
                vec!["true".to_owned(), "false".to_owned()],
                Kind::Condition,
            );
        }
        visit::visit_expr_if(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if let Some((_, guard)) =
            arm.guard.as_ref().filter(|(_, guard)| !has_let(guard) && !is_planted(guard))
        {
            self.add(guard.span(), vec!["true".to_owned(), "false".to_owned()], Kind::Guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let Some((_, other)) = SWAPS.iter().find(|(one, _)| call.method == one) {
            let (whole, name) = (call.span().byte_range(), call.method.span().byte_range());
            let (before, after) =
                (&self.text[whole.start..name.start], &self.text[name.end..whole.end]);
            let other = format!("{before}{other}{after}");
            self.add(call.span(), vec![other], Kind::Method);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = statement {
            let does = match expr {
                Expr::Assign(_) | Expr::MethodCall(_) | Expr::Call(_) => true,
                Expr::Binary(binary) => changes(&binary.op),
                _ => false,
            };
            if does {
                self.add(statement.span(), vec![String::new()], Kind::Statement);
            }
        }
        visit::visit_stmt(self, statement);
    }
}

/// The text from `from` to `to`, whose places these are by their start, each before those within it, with its first number.
fn rendered(text: &str, from: usize, to: usize, mut places: &[(&Place, usize)]) -> String {
    let (mut out, mut at) = (String::new(), from);
    while let Some(((place, first), rest)) = places.split_first() {
        let within = rest.iter().take_while(|(inner, _)| inner.start < place.end).count();
        out.push_str(&text[at..place.start]);
        let inner = rendered(text, place.start, place.end, &rest[..within]);
        let numbered =
            || place.others.iter().enumerate().map(|(index, other)| (first + index, other));
        match place.kind {
            Kind::Body => {
                for (number, value) in numbered() {
                    out.push_str(&format!(
                        " if crate::unplanned::at({first}) == {number} {{ return {value}; }} "
                    ));
                }
            }
            Kind::Statement => {
                out.push_str(&format!("if crate::unplanned::at({first}) != {first} {{ {inner} }}"))
            }
            _ => {
                out.push_str(&format!("(match crate::unplanned::at({first}) {{ "));
                for (number, other) in numbered() {
                    out.push_str(&format!("{number} => {{ {other} }}, "));
                }
                out.push_str(&format!("_ => {{ {inner} }} }})"));
            }
        }
        (at, places) = (place.end, &rest[within..]);
    }
    out + &text[at..to]
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let folder = Path::new(&folder);
    // `FILE:LINE`: where the compiler does not take a change.
    let without: Vec<String> = serde_json::from_str(&arguments.next().expect("what to leave out"))
        .expect("a list as JSON");
    let (mut next, mut list) = (1, Vec::new());
    for file in arguments {
        let text = fs::read_to_string(folder.join(&file)).expect("the file can be read");
        let tree = syn::parse_file(&text).expect("the file is Rust");
        let mut finder = Finder { text: &text, places: Vec::new(), constant: false };
        finder.visit_file(&tree);
        let line_of = |place: &Place| text[..place.start].matches('\n').count() + 1;
        let mut places = finder.places;
        places.retain(|place| !without.contains(&format!("{file}:{}", line_of(place))));
        places.sort_by_key(|place| {
            (
                place.start,
                Reverse(place.end),
                place.kind != Kind::Statement,
                place.kind == Kind::Operator,
            )
        });
        let mut numbered = Vec::new();
        for place in &places {
            numbered.push((place, next));
            let was = match place.kind {
                Kind::Body => {
                    text[..place.start].rfind("fn ").map_or("", |at| &text[at..place.start])
                }
                _ => &text[place.start..place.end],
            };
            for (index, other) in place.others.iter().enumerate() {
                let (was, is) = (in_one_line(was), in_one_line(other));
                list.push(json!({
                    "number": next + index, "first": next, "file": file, "line": line_of(place), "kind": place.kind.name(), "was": was, "is": is,
                }));
            }
            next += place.others.len();
        }
        fs::write(folder.join(&file), rendered(&text, 0, text.len(), &numbered))
            .expect("the file can be written");
    }
    let list = serde_json::to_string(&list).expect("a list is JSON");
    fs::write(folder.join("unplanned.json"), list).expect("the list can be written");
}
